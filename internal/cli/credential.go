package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

var (
	errNoKey    = errors.New("no API key: set REMIT_API_KEY, or use --api-key=@FILE or --api-key=- (standard input)")
	errNoSecret = errors.New("no agent: set REMIT_AGENT and REMIT_SECRET, or use --agent=ID and --secret=@FILE, --secret=- (standard input), " +
		"--key-file=FILE or --assertion-file=FILE")
	errNoCaller = errors.New("no credential: set REMIT_API_KEY, or REMIT_AGENT and REMIT_SECRET")
	errBoth     = errors.New("use either --api-key, or --agent and --secret")

	errManyCredentials = errors.New("the agent has several credentials: use only one of --secret, --key-file and --assertion-file")
	errKeyInMemory     = errors.New("--dpop=1 makes a key that ends with this command, and the tokens with it: use --dpop=FILE")
)

// credential is a flag: @FILE, - for standard input, or the credential itself.
type credential string

// read returns the credential without surrounding white space. Its errors do not contain what it read.
func (c credential) read() (string, error) {
	name, inFile := strings.CutPrefix(string(c), "@")
	switch {
	case c == "-":
		return readFrom(os.Stdin)
	case inFile:
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		return readFrom(file)
	}
	return strings.TrimSpace(string(c)), nil
}

// maxCredential bounds what is read, in bytes. Every credential is shorter.
const maxCredential = 16 << 10

func readFrom(file *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxCredential))
	if err != nil {
		return "", fmt.Errorf("reading a credential: %w", err)
	}
	if credential := strings.TrimSpace(string(text)); credential != "" {
		return credential, nil
	}
	return "", fmt.Errorf("%s holds no credential", file.Name())
}
