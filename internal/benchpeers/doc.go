// Package benchpeers measures the Go evaluation of a contract beside general
// policy engines that decide the same refund, and settling beside River's jobs.
// It is a module of its own, so that users of Countersign do not inherit the engines' dependencies.
package benchpeers
