package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"

	"github.com/google/uuid"
	"remit/client/prices"
)

// settings are what a call goes by: a config with what its files hold. They do not change; a call keeps those that it began with.
type settings struct {
	config
	table     *prices.Table
	version   string // of the price table, which the record of each call has
	upstreams map[string]*upstream
	files     map[string]stamp // that were read, as they were before: a change meanwhile is seen at the next look
}

// isStale reports whether a file has changed since it was read.
func (s *settings) isStale() bool {
	for file, read := range s.files {
		if !read.equal(stampOf(file)) {
			return true
		}
	}
	return false
}

// upstream is a provider with its key.
type upstream struct {
	upstreamConfig
	key           func() string // never shown, logged or stored: nothing that prints an upstream, by whatever verb, calls it
	organizations map[uuid.UUID]bool
	sharesKey     bool // with another upstream, for other organizations
}

// String is short, for logs and tests.
func (u *upstream) String() string { return u.Name }

// LogValue is the same for logs.
func (u *upstream) LogValue() slog.Value { return slog.StringValue(u.Name) }

// serves reports whether callers of the organization may use the upstream.
func (u *upstream) serves(organization uuid.UUID) bool {
	return u.AnyOrganization || u.organizations[organization]
}

// isShared reports whether organizations share the provider's account, and with it what the provider keeps.
func (u *upstream) isShared() bool {
	return u.AnyOrganization || len(u.organizations) > 1 || u.sharesKey
}

// noteSharedKeys finds the upstreams whose key other organizations use under another name: it is one account.
func (s *settings) noteSharedKeys() {
	for _, u := range s.upstreams {
		for _, other := range s.upstreams {
			u.sharesKey = u.sharesKey || u.key() == other.key() && (other.AnyOrganization || !maps.Equal(u.organizations, other.organizations))
		}
	}
}

// readSettings reads a config's file and the files that it names.
func readSettings(path string) (*settings, error) {
	s := &settings{upstreams: map[string]*upstream{}, files: map[string]stamp{path: stampOf(path)}}
	c, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	s.config, s.files[c.Prices] = c, stampOf(c.Prices)
	for _, of := range c.Upstreams {
		if of.KeyFile != "" {
			s.files[of.KeyFile] = stampOf(of.KeyFile)
		}
	}
	var faults []error
	if s.table, s.version, err = readPrices(c.Prices); err != nil {
		faults = append(faults, fmt.Errorf("%s:%d: prices: %w", path, c.pricesLine, err))
	}
	for i, of := range c.Upstreams {
		u := &upstream{upstreamConfig: of, organizations: map[uuid.UUID]bool{}}
		for _, id := range of.Organizations {
			u.organizations[id] = true
		}
		key, err := of.readKey()
		u.key = func() string { return key }
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: upstreams[%d].%w", path, of.keyLine, i, err))
		}
		s.upstreams[of.Name] = u
	}
	s.noteSharedKeys()
	return s, errors.Join(faults...)
}

// readPrices reads a price table, whose version is the beginning of the SHA-256 of its file.
func readPrices(path string) (table *prices.Table, version string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	if table, err = prices.Parse(text); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	hash := sha256.Sum256(text)
	return table, hex.EncodeToString(hash[:8]), nil
}

// maxKey bounds a provider's key, in bytes.
const maxKey = 4096

// readKey returns the provider's key. Its error names the field and the file or variable, and nothing of what is in there.
func (c *upstreamConfig) readKey() (string, error) {
	field, where := "key_file", c.KeyFile
	var text string
	if c.KeyEnv != "" {
		field, where, text = "key_env", c.KeyEnv, os.Getenv(c.KeyEnv)
	} else {
		content, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", fmt.Errorf("%s: %w", field, err)
		}
		text = string(content)
	}
	text = strings.TrimSpace(text)
	isVisible := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
	if text == "" || len(text) > maxKey || !isVisible {
		return "", fmt.Errorf("%s: %s holds no key: 1 to %d visible ASCII characters", field, where, maxKey)
	}
	return text, nil
}

// warnings are what an operator should know of these settings.
func (s *settings) warnings() (all []string) {
	for _, u := range s.Upstreams {
		if u.AnyOrganization {
			all = append(all, "upstream "+u.Name+" serves every organization of this Remit with one provider's key: organizations is [\"*\"]")
		}
	}
	return all
}
