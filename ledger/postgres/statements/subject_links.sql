-- name: LinkSubjects
INSERT INTO subject_links (tenant_id, subject_id, linked_subject_id)
SELECT $1, n.subject_id, n.linked_subject_id
FROM unnest($2::text[], $3::text[]) AS n(subject_id, linked_subject_id)
ORDER BY n.subject_id, n.linked_subject_id
ON CONFLICT (tenant_id, subject_id, linked_subject_id) DO NOTHING
RETURNING subject_id, linked_subject_id;

-- name: LinksOfSubjects
SELECT l.subject_id, l.linked_subject_id
FROM subject_links l
WHERE l.tenant_id = $1 AND l.subject_id = ANY ($2::text[])
ORDER BY l.subject_id, l.linked_subject_id;
