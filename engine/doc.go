// Package engine holds the domain of Countersign: instants, exact decimals,
// bounded JSON values, actions, facts, sources and verdicts.
//
// Nothing below this folder performs input or output: no database, no network,
// no clock, no logger. What an evaluation needs is passed in.
//
// Known limits: instants are whole seconds between 1970 and 9999 (decision D1);
// decimals have at most 38 significant digits (decision D2).
package engine
