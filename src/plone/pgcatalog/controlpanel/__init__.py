"""The settings of a site: registry records, and control panels in Classic UI and in Volto."""
