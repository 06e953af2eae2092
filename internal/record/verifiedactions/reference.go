package verifiedactions

// ReferenceKey is the attribute of a tool-call span that says of which receipt
// it was made: the receipt's reference id, which is the action's id (decision D13).
const ReferenceKey = "verified_actions_reference_id"
