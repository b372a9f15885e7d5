"""The settings of a site: registry records, a control panel in Classic UI, the same in Volto."""
