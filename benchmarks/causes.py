"""Why a goal is missed, and what was tried: printed with the goals that the stored results miss."""

DESIGN = "../explanation/performance-design.md"

UNKNOWN = "Nobody has looked into it."
REPEATED = """\
The answer comes from the process's cache; what remains is compiling the query, asking whether the snapshot's state is still
the one of the answer, and making brains. *Tried:* compiled queries are kept, brains share decoded values."""
SMALL = f"""\
A warm ZCatalog of 500 documents answers from objects in memory in less time than one message to PostgreSQL takes. *Tried:*
one message for a search, prepared statements, one plan for all values, rows known by version, remembered URLs, page and
count in one statement, [and more]({DESIGN}#where-it-is-slower-and-why)."""
LITTLE_CACHE = """\
Searches for words and for any of several keywords visit each row that matches to count them. *Tried:* see the same with a
ZODB cache of 30,000 objects."""
IN_MEMORY = f"""\
ZCatalog intersects sets that are in memory. Ours counts from an index alone where the condition is of types, states, roles,
interfaces and dates, and that is as fast or faster; but a count of keywords, of words and of beginnings visits each row
that matches, for the state, roles and dates are in the row. Half of a page for words is fetching and unpacking the texts of
its candidates. *Tried:* lists by number with covering indexes, page and count in one statement, candidates instead of all
hits, hits as one array, scans or indexes switched off for a statement. [All of it]({DESIGN}#ranked-pages)."""
AFTER_A_SAVE = """\
The state of the catalog and the versions of the rows are read again in one message; ZCatalog reads what has changed of its
trees, which in a small site is nothing or little. *Tried:* rows behind the first page without their metadata, four
statements in one message, the state without a message of its own."""
COLD = """\
Four messages that depend on each other (tool, indexes, state, page), and a new server process that reads the definitions of
the table's indexes before its first plan. *Tried:* objects of the tool loaded together, transforms read when the process
starts, fewer indexes ([each has its queries](sql-indexes.md))."""
VALUES_AGAIN = """\
The snapshot's state is compared and the values are copied for the caller. *Tried:* the sorted answer is kept, and nothing
is asked of PostgreSQL."""
SPELLING = """\
Two words, each with up to 200 neighbours in the list of all words, and a look whether the user may see a text with one.
*Tried:* neighbours by deletions in a GIN, with and without pg_trgm; both words in one statement."""
FACETS = f"""\
Every row that matches is visited, for the five columns are in no index together. *Tried:* each column by its own index
(only without any condition, which no visitor's search is), groups of all columns first.
[Figures]({DESIGN}#tried-and-not-taken)."""
MANY_ROWS = """\
The slowest scenarios visit each row that matches: a beginning of words, keywords with a count, a long window of dates.
*Tried:* parallel workers, bitmaps of 64 MB, visiting only a part of the hits of a frequent word."""
COUNT = """\
An index alone is read, but one entry for each row that matches. *Tried:* covering indexes; SQL written by hand on a narrow
table takes longer (*bare SQL*)."""
FLOOR = f"""\
Half of our time is the query dialect, the user's restrictions and 25 brains with URLs, none of which the bare SQL has.
*Tried:* see [where it is slower]({DESIGN}#where-it-is-slower-and-why)."""
SAVES = """\
Most of a save is Plone and the storage: see *creation without a catalog* below. *Tried:* each attribute asked once, ids in
blocks, few messages for a commit's rows, fewer bytes for each index."""
ONE_CORE = """\
A rebuild inside a transaction has one core, as ZCatalog's has. The command and the ZMI use all of them, next line."""
REBUILD = """\
Loading each object, and asking Plone for some seventy values of it, is most of the time, on any number of cores. *Tried:* a
process for each core, bulk writes, missing attributes found out once for each container."""
SIZE = f"""\
Objects stand as JSON, twice the size of their pickles, whatever catalogs them. *Tried:* lists by number, fewer indexes;
paths once in a row ([not taken]({DESIGN}#tried-and-not-taken))."""
MEMORY = """\
The process holds Plone itself, the result cache and the rows of the last searches. *Tried:* the cache has a limit."""
HTML = """\
Most of a page is Plone rendering it: compare the processor time of Zope below, of which the catalog has a small part.
*Tried:* rows by version, navigation that reads what it shows, remembered URLs, objects of a page loaded together; the
search page shows facets and snippets besides, which ZCatalog's does not have."""
REST = f"""\
Most of a small answer is Plone's own: the way to the view, the user, JSON. The message to PostgreSQL is half of the rest; a
new word is compiled and its texts ranked. *Tried:* two stages of ranking, page and count in one statement, one plan for all
values. [Figures]({DESIGN}#where-it-is-slower-and-why)."""
WRITER = """\
Each save makes every process read the state and versions of the rows it shows. *Tried:* rows by version, one message, no
metadata that the process has."""
