// Package floors holds the architecture by tests: who may import whom, and where no clock is read.
// It reads the source of the repository, imports only, and holds no code of the product.
//
// The rooms are in rooms_test.go. A folder that belongs to no room fails the test: give it one.
package floors
