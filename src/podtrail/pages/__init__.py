"""What HTML pages are made with, those of the viewer and reports alike: environment, skeleton, colours, bars."""
