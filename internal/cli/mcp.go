package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"remit/client"
	"remit/client/prices"
)

// mcpCommand has no --json: what it writes is the protocol.
type mcpCommand struct {
	Addr string `placeholder:"URL" help:"URL of the service. The default is http://127.0.0.1:8080."`
	agentFlags
	Session    string     `placeholder:"ID" help:"The session's id."`
	SessionKey credential `placeholder:"KEY" help:"Session key instead of an agent, its credential and a session: @FILE, or the key itself. Prefer the environment variable."`
	Prices     string     `env:"-" type:"path" placeholder:"FILE" help:"Price table of models, for estimate: the JSON of per-token costs by model."`
}

// Validate is called by the flag parser.
func (c *mcpCommand) Validate() error {
	switch {
	case c.SessionKey == "-":
		return errors.New("--session-key: standard input has the protocol: use REMIT_SESSION_KEY or --session-key=@FILE")
	case c.SessionKey != "":
		return nil
	case c.Secret == "-":
		return errors.New("--secret: standard input has the protocol: use REMIT_SECRET or --secret=@FILE")
	case c.Session == "":
		return errors.New("no session: set REMIT_SESSION_KEY, or REMIT_SESSION; or use --session-key=@FILE or --session=ID")
	}
	return nil
}

// Help is appended to the command's help.
func (c *mcpCommand) Help() string {
	return "It speaks the Model Context Protocol over standard input and output, for the one agent that starts it. The agent's model can " +
		"ask what is left (get_budget), what a call can cost at most (estimate, with --prices), and for more (request_more), which " +
		"remit session approve or the console answers."
}

// Run serves until standard input ends.
func (c *mcpCommand) Run() error {
	s := service{Addr: c.Addr}
	remit, err := s.client(client.Options{})
	if err != nil {
		return err
	}
	session, err := c.session(remit)
	if err != nil {
		return err
	}
	var table *prices.Table
	if c.Prices != "" {
		if table, err = prices.ReadFile(c.Prices); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = newMCPServer(session, table).Run(ctx, &mcp.StdioTransport{})
	if ctx.Err() != nil { // it was ended
		return nil
	}
	return err
}

// session returns the session of the key, or of the agent.
func (c *mcpCommand) session(remit *client.Client) (*client.Session, error) {
	key, err := c.SessionKey.read()
	if err != nil {
		return nil, err
	}
	if key != "" {
		return remit.SessionWithKey(key)
	}
	agent, err := c.agentOf(remit, errNoSecret)
	if err != nil {
		return nil, err
	}
	return agent.Session(c.Session), nil
}
