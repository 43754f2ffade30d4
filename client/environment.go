package client

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The environment variables that all SDKs and the commands of remit read.
const (
	variableAddress = "REMIT_ADDR"    // the base URL of the service; not set: defaultAddress
	variableKey     = "REMIT_API_KEY" // of an organization
	variableAgent   = "REMIT_AGENT"   // its id
	variableSecret  = "REMIT_SECRET"  // the agent's
	variableSession = "REMIT_SESSION" // its id

	defaultAddress = "http://127.0.0.1:8080"
)

// FromEnv returns a Client for the service at REMIT_ADDR, which defaults to http://127.0.0.1:8080.
func FromEnv(options Options) (*Client, error) {
	address := strings.TrimSpace(os.Getenv(variableAddress))
	if address == "" {
		address = defaultAddress
	}
	return New(address, options)
}

// OrganizationFromEnv returns the organization of the API key in REMIT_API_KEY, at the service of FromEnv.
func OrganizationFromEnv(options Options) (*Organization, error) {
	values, err := required(variableKey)
	if err != nil {
		return nil, err
	}
	c, err := FromEnv(options)
	if err != nil {
		return nil, err
	}
	return c.Organization(values[0]), nil
}

// AgentFromEnv returns the agent of the id and secret in REMIT_AGENT and REMIT_SECRET, at the service of FromEnv.
func AgentFromEnv(options Options) (*Agent, error) {
	values, err := required(variableAgent, variableSecret)
	if err != nil {
		return nil, err
	}
	c, err := FromEnv(options)
	if err != nil {
		return nil, err
	}
	return c.Agent(values[0], values[1]), nil
}

// SessionFromEnv returns the session of the id in REMIT_SESSION, for the agent of AgentFromEnv.
func SessionFromEnv(options Options) (*Session, error) {
	if _, err := required(variableAgent, variableSecret, variableSession); err != nil { // names all that are missing
		return nil, err
	}
	agent, err := AgentFromEnv(options)
	if err != nil {
		return nil, err
	}
	return agent.Session(strings.TrimSpace(os.Getenv(variableSession))), nil
}

// required reads variables that must be set. It refuses @FILE and -, which the commands of remit read from a file or standard
// input, because the service would only report them as a wrong credential.
func required(names ...string) ([]string, error) {
	var values, missing []string
	for _, name := range names {
		value := strings.TrimSpace(os.Getenv(name))
		switch {
		case value == "":
			missing = append(missing, name)
		case strings.HasPrefix(value, "@"), value == "-":
			return nil, errors.New("remit: " + name + " must be the text itself: the SDK reads no file")
		}
		values = append(values, value)
	}
	if missing != nil {
		return nil, fmt.Errorf("remit: set %s", strings.Join(missing, ", "))
	}
	return values, nil
}
