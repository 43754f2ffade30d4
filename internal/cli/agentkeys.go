package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"remit/client"
)

// maxKeys bounds what is read of a file of public keys, in bytes. The service takes 16 KiB.
const maxKeys = 64 << 10

// agentKeys are the flags of an agent's public keys.
type agentKeys struct {
	JWKS    keyFile `name:"jwks" env:"-" type:"path" placeholder:"FILE" help:"Public keys of the agent: a JWK Set, a JWK or PEM. Of a private key only the public part is sent."`
	JWKSURI string  `name:"jwks-uri" env:"-" placeholder:"URL" help:"Where the agent's public keys are, instead: https, with a public address."`
}

// keyFile is the name of a file with keys.
type keyFile string

func (k agentKeys) keys() (json.RawMessage, error) { return k.JWKS.read() }

// read returns the public keys in the file; nil: there is none.
func (f keyFile) read() (json.RawMessage, error) {
	if f == "" {
		return nil, nil
	}
	text, err := os.ReadFile(string(f))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxKeys:
		return nil, fmt.Errorf("%s is longer than %d KiB", string(f), maxKeys>>10)
	}
	keys, err := client.PublicJWKS(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", string(f), err)
	}
	return keys, nil
}

// factsOfKeys are how an agent authenticates, and what its tokens may be for.
func factsOfKeys(a client.AgentInfo) []Fact {
	var secret, audiences, proofs string
	if a.HasSecret != nil && !*a.HasSecret {
		secret = "no"
	}
	if a.Audiences != nil {
		audiences = strings.Join(*a.Audiences, ",")
		if audiences == "" {
			audiences = "the service alone"
		}
	}
	if a.DPoPRequired {
		proofs = "required"
	}
	return []Fact{{"HAS A SECRET", secret}, {"KEYS", shownKeys(a.JWKS)}, {"KEYS AT", a.JWKSURI}, {"AUDIENCES", audiences}, {"PROOFS", proofs}}
}

// shownKeys names public keys by their ids and types.
func shownKeys(set json.RawMessage) string {
	var keys struct {
		Keys []struct {
			ID   string `json:"kid"`
			Type string `json:"kty"`
		} `json:"keys"`
	}
	if set == nil || json.Unmarshal(set, &keys) != nil {
		return ""
	}
	shown := make([]string, len(keys.Keys))
	for i, k := range keys.Keys {
		shown[i] = strings.TrimSpace(k.Type + " " + k.ID)
	}
	return strings.Join(shown, ", ")
}
