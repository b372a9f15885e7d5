-- The words of a text index that match patterns: counted words ({words}), and the words of rows written since.
-- Values: catalog, text column, relation, patterns, patterns for LIKE, text query; then those of {words}.
WITH counted AS MATERIALIZED (
    -- Only if the words were counted in this relation.  A copy of the database has transaction numbers of another server,
    -- but no row that was written by the transaction of the count.
    SELECT counted_from FROM pgcatalog_texts
    WHERE catalog = %s AND text_column = %s AND relation = %s AND xmin = counted_by::xid
)
-- A row without a pattern shows that there is a count.
SELECT NULL::text AS pattern, NULL::text AS word FROM counted
UNION ALL (
    -- The words of all rows that were written since the count.
    SELECT DISTINCT wanted.pattern, lexeme
    FROM counted, {relation} AS c, unnest(tsvector_to_array(c.{column})) AS lexeme,
        unnest(%s::text[], %s::text[]) AS wanted (pattern, likes)
    WHERE age(c.xmin) <= age(counted_from::xid) AND c.{column} @@ %s::tsquery AND lexeme LIKE wanted.likes
)
UNION ALL {words}
