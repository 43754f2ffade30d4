package client

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The variables that the SDKs of all languages read, and the commands of remit too.
const (
	variableAddress = "REMIT_ADDR"    // the base URL of the service; not set: defaultAddress
	variableKey     = "REMIT_API_KEY" // of an organization
	variableAgent   = "REMIT_AGENT"   // its id
	variableSecret  = "REMIT_SECRET"  // the agent's
	variableSession = "REMIT_SESSION" // its id

	defaultAddress = "http://127.0.0.1:8080"
)

// FromEnv makes a Client for the service at REMIT_ADDR, or http://127.0.0.1:8080 when that is not set.
func FromEnv(options Options) (*Client, error) {
	address := strings.TrimSpace(os.Getenv(variableAddress))
	if address == "" {
		address = defaultAddress
	}
	return New(address, options)
}

// OrganizationFromEnv is the organization whose API key is in REMIT_API_KEY, at the service of FromEnv.
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

// AgentFromEnv is the agent whose id and secret are in REMIT_AGENT and REMIT_SECRET, at the service of FromEnv.
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

// SessionFromEnv is the session whose id is in REMIT_SESSION, of the agent of AgentFromEnv.
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

// required reads variables that must be set. The commands of remit read a credential from a file given as @FILE, or from
// standard input given as -; sent as it stands, that would only be refused as a wrong credential.
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
