package keys

import (
	"os"

	"remit/internal/token"
)

// Commands are `remit keys …`. All except generate work on the keys stored in Redis, whether instances are running or not.
type Commands struct {
	Generate generateKey `cmd:"" help:"Print a new key for --signing-key, --token-key or --key-encryption-key."`
	List     listKeys    `cmd:"" help:"List the keys stored in Redis."`
	Rotate   rotateKey   `cmd:"" help:"Add a key: every instance publishes it now and signs with it later."`
	Retire   retireKey   `cmd:"" help:"Stop accepting a key at once, or withdraw one that does not sign yet."`
}

type generateKey struct {
	Kind      string          `arg:"" enum:"signing,token,encryption" help:"signing (of access tokens), token (of refresh tokens) or encryption (of keys in Redis)."`
	Algorithm token.Algorithm `enum:"EdDSA,ES256,RS256" default:"EdDSA" help:"Algorithm of a signing key: EdDSA, ES256 or RS256."`
}

// Run prints a key in the form that its flag reads.
func (c *generateKey) Run() error {
	material := token.GenerateRefreshKey()
	if c.Kind == "signing" {
		var err error
		if material, err = token.GenerateSigningKey(c.Algorithm); err != nil {
			return err
		}
	}
	_, err := os.Stdout.Write(material)
	return err
}
