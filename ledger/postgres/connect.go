package postgres

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// connectRemedies say what helps against a server that answers and lets nobody in, by SQLSTATE.
var connectRemedies = map[string]string{
	"28P01": "correct user and password in the store's URL", // invalid_password
	"28000": "correct the user in the store's URL, or let pg_hba.conf admit it",
	"3D000": "correct the database in the store's URL, or create it",
	"53300": "give the server more max_connections, or the programs a smaller pool_max_conns", // too_many_connections
	"57P03": "it starts or stops; try again",                                                  // cannot_connect_now
}

// unconnected is a server that could not be reached, in one line.
type unconnected struct {
	text  string
	cause error
}

func (e *unconnected) Error() string { return e.text }

func (e *unconnected) Unwrap() error { return e.cause }

// connecting words an error of connecting for those who have to mend it: the
// driver's own takes a line for every address and every way it tried. Any other error stays as it is.
func connecting(err error) error {
	var refused *pgconn.ConnectError
	if !errors.As(err, &refused) {
		return err
	}
	why, remedy := whyUnconnected(refused)
	return &unconnected{fmt.Sprintf("no connection to PostgreSQL at %s as user %q to database %q: %s; %s",
		strings.Join(addresses(refused.Config), ", "), refused.Config.User, refused.Config.Database, why, remedy), err}
}

func whyUnconnected(err error) (why, remedy string) {
	const reach = "start the server, or correct host and port in the store's URL"
	var server *pgconn.PgError
	var unknown *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &server):
		if remedy = connectRemedies[server.Code]; remedy == "" {
			remedy = "see the server's log"
		}
		return fmt.Sprintf("%s (SQLSTATE %s)", server.Message, server.Code), remedy
	case errors.As(err, &unknown):
		return fmt.Sprintf("the host %q is not known", unknown.Name), "correct the host in the store's URL"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", reach
	case errors.Is(err, os.ErrNotExist):
		return "there is no such socket", reach
	case errors.As(err, &network) && network.Timeout():
		return "no answer in time", "check the network, and host and port in the store's URL"
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimSpace(lines[len(lines)-1]), "check the store's URL and the server"
}

// addresses are the servers of a configuration, each once.
func addresses(c *pgconn.Config) []string {
	all := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		address := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}
