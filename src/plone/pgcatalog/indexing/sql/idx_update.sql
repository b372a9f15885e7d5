-- Expression: the new idx of an object, from its stored idx and the excluded idx of the storage's upsert.
-- An array is a change, [{key: new value}, [removed keys]].
CASE WHEN jsonb_typeof(EXCLUDED.idx) = 'array'
    THEN (COALESCE(object_state.idx, '{}') - ARRAY(SELECT jsonb_array_elements_text(EXCLUDED.idx -> 1)))
        || (EXCLUDED.idx -> 0)
    ELSE EXCLUDED.idx END
