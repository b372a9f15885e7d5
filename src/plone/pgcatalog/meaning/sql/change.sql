-- Saves the settings of the table of chunks %(name)s, unless it is retired.
UPDATE pgcatalog_vectors SET url = %(url)s, model = %(model)s, question_prefix = %(question_prefix)s,
    passage_prefix = %(passage_prefix)s, answers_as = %(answers_as)s, is_complete = %(is_complete)s,
    of_private = %(of_private)s, calibration = %(calibration)s
WHERE relation = %(name)s
