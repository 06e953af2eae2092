// Package processors measures what the agent_action processor costs beside the
// transform processor that writes the same attributes. It is a module of its
// own, so that users of Countersign do not inherit that processor's
// dependencies.
package processors
