"""The catalog of a tool: its configuration, searching and cataloguing."""
