package client

import (
	"cmp"
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
	variableSecret  = "REMIT_SECRET"  // the agent's; or
	variableSession = "REMIT_SESSION" // its id

	variableSessionKey = "REMIT_SESSION_KEY" // instead of the agent's id and credential, and of the session's id

	variableKeyFile       = "REMIT_KEY_FILE"       // AgentOptions.KeyFile; or
	variableAssertionFile = "REMIT_ASSERTION_FILE" // AgentOptions.AssertionFile
	variableDPoP          = "REMIT_DPOP"           // 1: a key in memory; otherwise a file for ReadKey; not set or 0: bearer tokens
	variableResource      = "REMIT_RESOURCE"       // AgentOptions.Resource, separated by spaces

	defaultAddress = "http://127.0.0.1:8080"
)

// FromEnv returns a Client for the service at REMIT_ADDR, which defaults to http://127.0.0.1:8080.
func FromEnv(options Options) (*Client, error) {
	c, err := New(cmp.Or(strings.TrimSpace(os.Getenv(variableAddress)), defaultAddress), options)
	if err != nil {
		return nil, fmt.Errorf("remit: %s: %s", variableAddress, strings.TrimPrefix(err.Error(), "remit: "))
	}
	return c, nil
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

// AgentFromEnv returns the agent of the id in REMIT_AGENT, at the service of FromEnv. It authenticates by REMIT_SECRET, or the file that
// REMIT_KEY_FILE or REMIT_ASSERTION_FILE names. REMIT_RESOURCE holds AgentOptions.Resource, separated by spaces. REMIT_DPOP=1 binds
// the tokens to a key in memory; otherwise it is the file of a private key.
func AgentFromEnv(options Options) (*Agent, error) { return agentFromEnv(options) }

// SessionFromEnv returns the session of the key in REMIT_SESSION_KEY; or the one of the id in REMIT_SESSION, for the agent of
// AgentFromEnv.
func SessionFromEnv(options Options) (*Session, error) {
	if os.Getenv(variableSessionKey) != "" {
		values, err := required(variableSessionKey)
		if err != nil {
			return nil, err
		}
		c, err := FromEnv(options)
		if err != nil {
			return nil, err
		}
		return c.SessionWithKey(values[0])
	}
	agent, err := agentFromEnv(options, variableSession)
	if err != nil {
		return nil, err
	}
	return agent.Session(strings.TrimSpace(os.Getenv(variableSession))), nil
}

// agentFromEnv is AgentFromEnv, and names those of the other variables that are missing too.
func agentFromEnv(options Options, others ...string) (*Agent, error) {
	var o AgentOptions
	credentials := []struct {
		name string
		into *string
	}{{variableSecret, &o.Secret}, {variableKeyFile, &o.KeyFile}, {variableAssertionFile, &o.AssertionFile}}
	var given []string
	for _, c := range credentials {
		if *c.into = strings.TrimSpace(os.Getenv(c.name)); *c.into != "" {
			given = append(given, c.name)
		}
	}
	switch len(given) {
	case 0:
		_, err := required(append([]string{variableAgent, variableSecret}, others...)...)
		return nil, fmt.Errorf("%w (or %s or %s instead of %s)", err, variableKeyFile, variableAssertionFile, variableSecret)
	case 1:
	default:
		return nil, fmt.Errorf("remit: set only one of %s", strings.Join(given, ", "))
	}
	values, err := required(append([]string{variableAgent}, others...)...)
	if err == nil && o.Secret != "" {
		_, err = required(variableSecret)
	}
	if err != nil {
		return nil, err
	}
	if o.DPoP, err = keyFromEnv(); err != nil {
		return nil, err
	}
	o.Resource = strings.Fields(os.Getenv(variableResource))
	c, err := FromEnv(options)
	if err != nil {
		return nil, err
	}
	return c.AgentWith(values[0], o)
}

// keyFromEnv returns the key for proofs; nil: none is wanted.
func keyFromEnv() (*Key, error) {
	switch wanted := strings.TrimSpace(os.Getenv(variableDPoP)); wanted {
	case "", "0":
		return nil, nil
	case "1":
		return GenerateKey(ES256)
	default:
		return ReadKey(wanted)
	}
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
