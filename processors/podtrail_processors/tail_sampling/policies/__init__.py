"""The policies: a module a type, and the list of those that may stand in a configuration (`leaves`)."""
