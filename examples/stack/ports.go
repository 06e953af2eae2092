package stack

import (
	"errors"
	"net"
)

// FreePorts finds n ports of localhost that nobody listens on. Another program
// may take one before ours does; Start then tries again with others.
func FreePorts(n int) ([]string, error) {
	addresses := make([]string, 0, n)
	listeners := make([]net.Listener, 0, n)
	var err error
	for len(listeners) < n && err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			listeners = append(listeners, l)
			addresses = append(addresses, l.Addr().String())
		}
	}
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return addresses, err
}

// free says whether all addresses can be listened on.
func free(addresses ...string) bool {
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return false
		}
		_ = l.Close() // nothing was accepted
	}
	return true
}
