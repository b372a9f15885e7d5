-- Saves the settings of the new table of chunks %(name)s, in place of the settings of a lost table with this name.
INSERT INTO pgcatalog_vectors (relation, catalog, number, url, model, question_prefix, passage_prefix,
    answers_as, is_complete, of_private, calibration)
VALUES (%(name)s, %(catalog)s, %(number)s, %(url)s, %(model)s, %(question_prefix)s, %(passage_prefix)s,
    %(answers_as)s, %(is_complete)s, %(of_private)s, %(calibration)s)
ON CONFLICT (relation) DO UPDATE SET url = EXCLUDED.url, model = EXCLUDED.model,
    question_prefix = EXCLUDED.question_prefix, passage_prefix = EXCLUDED.passage_prefix,
    answers_as = EXCLUDED.answers_as, is_complete = EXCLUDED.is_complete, of_private = EXCLUDED.of_private,
    calibration = EXCLUDED.calibration
