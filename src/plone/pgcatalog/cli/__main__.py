"""``python -m plone.pgcatalog.cli``."""

from plone.pgcatalog.cli.commands import main


main()
