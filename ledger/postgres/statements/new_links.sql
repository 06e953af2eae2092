-- Links to look at again, one row a batch.

-- name: NoteLinks
INSERT INTO new_links (tenant_id, subjects, linked_subjects) VALUES ($1, $2, $3);

-- name: TakeLinks
DELETE FROM new_links n
WHERE n.tenant_id = $1 AND n.id = ANY (ARRAY (
  SELECT w.id FROM new_links w WHERE w.tenant_id = $1 ORDER BY w.id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING n.subjects, n.linked_subjects;
