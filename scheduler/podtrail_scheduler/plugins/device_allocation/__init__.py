"""Which devices of which pools satisfy a claim (structured parameters, KEP-4381): found here, written by the plugin."""
