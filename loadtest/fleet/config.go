package fleet

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"
)

// Bounds of the flags. They keep a run's memory under a gigabyte and its arithmetic inside 64 bits.
const (
	maxAgents        = 10_000
	maxSessions      = 100 // per agent
	maxFleetSessions = 100_000
	maxRate          = 200_000 // actions per second
	minDuration      = 100 * time.Millisecond
	maxDuration      = time.Hour
)

// config says what to run.
type config struct {
	agents   int           // agents in the fleet, 1 to maxAgents
	sessions int           // sessions per agent, 1 to maxSessions
	rate     int           // actions per second over the whole fleet; 0: closed loop, as fast as possible
	duration time.Duration // how long the fleet acts, minDuration to maxDuration
	addr     string        // base URL without a path, on this machine; empty: start a service for the run

	session string // id of a session to charge, instead of a fleet's; empty: none
	agent   string // whose it is, from $REMIT_AGENT
	secret  string // of that agent, from $REMIT_SECRET: a command line is no place for it

	report string // file for the report; empty: none

	scenario     scenario
	transactions int           // percent of the actions that are transactions, 0 to 100; not used by the mixed, leased and tree scenarios
	patience     time.Duration // for what was set aside in trees to come back
	keys         bool          // send writes with idempotency keys, and repeat them when the answer is lost
	inFlight     int           // actions in flight in open loop, of a test; 0: maxInFlight
	breaking     bool          // a test breaks the service meanwhile, see Growth
}

// fleetSessions is the number of sessions of all agents together.
func (c config) fleetSessions() int { return c.agents * c.sessions }

// size says what is charged.
func (c config) size() string {
	if c.session != "" {
		return "session " + c.session
	}
	return fmt.Sprintf("%d agents, %d sessions", c.agents, c.fleetSessions())
}

// parseConfig reads the command line. Usage and errors go to stderr. The error is flag.ErrHelp when help was requested.
func parseConfig(args []string, stderr io.Writer) (config, error) {
	c := config{scenario: steady, patience: closePatience}
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.agents, "agents", 100, "`number` of agents")
	flags.IntVar(&c.sessions, "sessions", 2, "`number` of sessions per agent")
	flags.IntVar(&c.rate, "rate", 2000, "`actions` per second over the whole fleet, open loop; 0: as fast as possible, closed loop")
	flags.DurationVar(&c.duration, "duration", 10*time.Second, "`duration` of the run")
	flags.StringVar(&c.addr, "addr", "", "base `URL` of a running service on this machine; empty: start one with its own Redis")
	flags.StringVar(&c.session, "session", "", "`ID` of a session at -addr that is charged instead of a fleet's, by the agent $REMIT_AGENT with $REMIT_SECRET; Ctrl-C ends the run early")
	flags.Var(&c.scenario, "scenario", "`name` of the scenario: steady, burst, storm (all tokens expire at once), mixed (a realistic mix), leased (charges to leases) or tree (trees of sessions under a budget)")
	flags.IntVar(&c.transactions, "transactions", 10, "`percent` of the actions that are transactions (begin, then commit or roll back); not for mixed, leased and tree")
	flags.StringVar(&c.report, "report", "", "`file` for an HTML report of one page")
	flags.BoolVar(&c.keys, "keys", false, "send writes with idempotency keys, and repeat them when the answer is lost; without, the outcome of a lost answer stays unknown")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if c.session != "" {
		c.agents, c.sessions, c.transactions = 1, 1, 0
		c.agent, c.secret = os.Getenv("REMIT_AGENT"), os.Getenv("REMIT_SECRET")
	}
	err := c.check()
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return config{}, err
	}
	return c, nil
}

// check returns the first invalid flag, in words for the user.
func (c config) check() error {
	switch {
	case c.agents < 1 || c.agents > maxAgents:
		return fmt.Errorf("-agents %d: must be from 1 to %d", c.agents, maxAgents)
	case c.sessions < 1 || c.sessions > maxSessions:
		return fmt.Errorf("-sessions %d: must be from 1 to %d", c.sessions, maxSessions)
	case c.fleetSessions() > maxFleetSessions:
		return fmt.Errorf("-agents %d with -sessions %d makes %d sessions: at most %d", c.agents, c.sessions, c.fleetSessions(), maxFleetSessions)
	case c.rate < 0 || c.rate > maxRate:
		return fmt.Errorf("-rate %d: must be from 0 to %d", c.rate, maxRate)
	case c.duration < minDuration || c.duration > maxDuration:
		return fmt.Errorf("-duration %s: must be from %s to %s", c.duration, minDuration, maxDuration)
	case c.rate == 0 && c.scenario == burst:
		return errors.New("-scenario burst: needs a -rate")
	case c.transactions < 0 || c.transactions > 100:
		return fmt.Errorf("-transactions %d: must be from 0 to 100", c.transactions)
	case c.session != "":
		return c.checkGiven()
	case c.addr == "":
		return nil
	}
	_, err := hostPort(c.addr)
	return err
}

// checkGiven returns the first setting that does not fit a session that exists.
func (c config) checkGiven() error {
	switch {
	case c.addr == "":
		return errors.New("-session: needs the -addr of its service")
	case c.agent == "" || c.secret == "":
		return errors.New("-session: needs its agent in $REMIT_AGENT and that agent's secret in $REMIT_SECRET")
	case c.scenario != steady && c.scenario != burst:
		return fmt.Errorf("-session: not with -scenario %s", c.scenario)
	case c.report != "":
		return errors.New("-session: not with -report")
	}
	_, err := hostPort(c.addr)
	return err
}

// hostPort returns the host:port of a base URL. It accepts only loopback hosts, because this program may put load only on
// the user's own service.
func hostPort(addr string) (string, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return "", fmt.Errorf("-addr %q: want a base URL such as http://127.0.0.1:8080", addr)
	}
	if u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("-addr %q: want scheme, host and port only", addr)
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return "", fmt.Errorf("-addr %q: host %s is not this machine; load goes to 127.0.0.0/8, localhost or ::1 only", addr, host)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(host, port), nil
}
