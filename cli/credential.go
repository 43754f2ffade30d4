package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

var (
	errNoKey    = errors.New("no API key: set REMIT_API_KEY, or give --api-key=@FILE or --api-key=- for standard input")
	errNoSecret = errors.New("no agent: set REMIT_AGENT and REMIT_SECRET, or give --agent=ID and --secret=@FILE or --secret=- for standard input")
	errNobody   = errors.New("no credential: set REMIT_API_KEY, or REMIT_AGENT and REMIT_SECRET")
	errBoth     = errors.New("give --api-key, or --agent and --secret, not both")
)

// credential says where one is: @FILE, - for standard input, or the text itself.
type credential string

// read returns the credential without the white space around it. No error tells what it read.
func (c credential) read() (string, error) {
	name, inFile := strings.CutPrefix(string(c), "@")
	switch {
	case c == "-":
		return firstOf(os.Stdin)
	case inFile:
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		return firstOf(file)
	}
	return strings.TrimSpace(string(c)), nil
}

// longestCredential is more than any credential is long.
const longestCredential = 16 << 10

func firstOf(file *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(file, longestCredential))
	if err != nil {
		return "", fmt.Errorf("reading a credential: %w", err)
	}
	if credential := strings.TrimSpace(string(text)); credential != "" {
		return credential, nil
	}
	return "", fmt.Errorf("%s holds no credential", file.Name())
}
