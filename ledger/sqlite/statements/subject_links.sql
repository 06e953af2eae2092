-- Both directions are rows; what was linked already is not returned.
-- name: LinkSubjects
INSERT INTO subject_links (tenant_id, subject_id, linked_subject_id)
SELECT ?1, value ->> 0, value ->> 1 FROM jsonb_each(?2)
WHERE true
ON CONFLICT DO NOTHING
RETURNING subject_id, linked_subject_id;

-- name: LinksOfSubjects
SELECT l.subject_id, l.linked_subject_id FROM subject_links l
WHERE l.tenant_id = ?1 AND l.subject_id IN (SELECT value FROM json_each(?2))
ORDER BY l.subject_id, l.linked_subject_id;
