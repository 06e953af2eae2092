package history

// add places a receipt in its chain, and the one behind it that came before it.
func (tx *transaction) add(e Entry) (Standing, error) {
	key := receiptKey(e.KeyID, e.ReferenceID)
	known, ok, err := read[Entry](tx, key)
	if err != nil {
		return Standing{}, err
	}
	if ok && known.Hash == e.Hash {
		return Standing{Kind: Duplicate, Status: known.Status}, nil
	}
	if ok {
		return Standing{Kind: Conflict}, nil
	}
	link := linkKey(&e, e.Seq)
	_, taken, err := read[string](tx, link)
	if err != nil {
		return Standing{}, err
	}
	if e.Status, err = tx.status(&e, taken); err != nil {
		return Standing{}, err
	}
	if err := tx.set(key, e); err != nil {
		return Standing{}, err
	}
	if !taken && e.SessionID != "" {
		if err := tx.link(&e, link, key); err != nil {
			return Standing{}, err
		}
	}
	return Standing{Status: e.Status}, tx.enqueue(&e, key, link)
}

func (tx *transaction) link(e *Entry, link, key string) error {
	if err := tx.set(link, key); err != nil {
		return err
	}
	return tx.settleBehind(e)
}

func (tx *transaction) status(e *Entry, taken bool) (Status, error) {
	switch {
	case e.SessionID == "": // nothing says which chain it is of
		return Unverified, nil
	case taken:
		return Mismatch, nil
	}
	if e.Seq == 1 {
		switch e.Anchor {
		case "":
			return Unverified, nil
		case e.PrevHash:
			return Anchor, nil
		}
		return Mismatch, nil
	}
	before, ok, err := tx.at(e, e.Seq-1)
	if err != nil {
		return "", err
	}
	if ok {
		return linkTo(&before, e), nil
	}
	return tx.withoutPredecessor(e)
}

func linkTo(before, e *Entry) Status {
	switch {
	case e.PrevHash != before.Hash:
		return Mismatch
	case before.Status.wrong():
		return Broken
	}
	return Linked
}

// withoutPredecessor tells one that has not come from one that may have come
// and was forgotten.
func (tx *transaction) withoutPredecessor(e *Entry) (Status, error) {
	s, known, err := read[session](tx, sessionKey(e))
	if err != nil {
		return "", err
	}
	if known {
		if e.Seq-1 <= s.Forgotten {
			return Unverified, nil
		}
		return Gap, nil
	}
	queue, _, err := read[ends](tx, endsKey)
	if err != nil {
		return "", err
	}
	if tx.history.whole && !queue.Lost {
		return Gap, nil
	}
	return Unverified, nil
}

// at finds the receipt with a number in the session of e.
func (tx *transaction) at(e *Entry, seq uint64) (Entry, bool, error) {
	key, ok, err := read[string](tx, linkKey(e, seq))
	if err != nil || !ok {
		return Entry{}, false, err
	}
	return read[Entry](tx, key)
}

// settleBehind gives those behind e the status that they could not have before
// it came.
func (tx *transaction) settleBehind(e *Entry) error {
	before := *e
	for range MaxBroken {
		behind, ok, err := tx.at(e, before.Seq+1)
		if err != nil || !ok {
			return err
		}
		status := behind.Status
		switch {
		case behind.Status.open():
			status = linkTo(&before, &behind)
		case behind.Status == Linked && before.Status.wrong():
			status = Broken
		}
		if status == behind.Status {
			return nil
		}
		behind.Status = status
		if err := tx.set(receiptKey(behind.KeyID, behind.ReferenceID), behind); err != nil {
			return err
		}
		before = behind
	}
	return nil
}

// enqueue counts the receipt in, and forgets the oldest ones that are too many.
func (tx *transaction) enqueue(e *Entry, key, link string) error {
	queue, _, err := read[ends](tx, endsKey)
	if err != nil {
		return err
	}
	s, _, err := read[session](tx, sessionKey(e))
	if err != nil {
		return err
	}
	s.Receipts++
	if err := tx.set(sessionKey(e), s); err != nil {
		return err
	}
	if err := tx.set(queueKey(queue.Next), queued{key, link, sessionKey(e), e.Seq}); err != nil {
		return err
	}
	queue.Next++
	for queue.Next-queue.First > tx.history.most {
		lost, err := tx.forget(queue.First)
		if err != nil {
			return err
		}
		queue.Lost = queue.Lost || lost
		queue.First++
	}
	return tx.set(endsKey, queue)
}

// forget drops the n-th receipt, and its session when it was the last of it.
func (tx *transaction) forget(n uint64) (lost bool, err error) {
	place, ok, err := read[queued](tx, queueKey(n))
	tx.delete(queueKey(n))
	if err != nil || !ok {
		return false, err
	}
	holder, _, err := read[string](tx, place.Link)
	if err != nil {
		return false, err
	}
	if holder == place.Receipt { // not another one's with the same number
		tx.delete(place.Link)
	}
	tx.delete(place.Receipt)
	s, ok, err := read[session](tx, place.Session)
	if err != nil || !ok {
		return true, err
	}
	if s.Receipts <= 1 {
		tx.delete(place.Session)
		return true, nil
	}
	s.Receipts--
	s.Forgotten = max(s.Forgotten, place.Seq)
	return false, tx.set(place.Session, s)
}
