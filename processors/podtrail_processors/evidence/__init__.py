"""What spans say, decoded no further than somebody asks: columns, counts, sizes, and which values are met in them."""
