package gateway

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// config is what the file of --config says. newConfig has the defaults.
type config struct {
	Listen string
	TLS    *tlsFiles // nil: plain HTTP
	Prices string    // file

	Hold      time.Duration // how long a hold lasts; renewed at half of it
	MinOutput int64         // tokens; a limit is never lowered below it
	MaxBody   int64         // bytes of a request

	MaxStreams                int // calls in progress
	MaxStreamsPerOrganization int // 0: three quarters of MaxStreams

	FirstByte time.Duration // until the provider answers
	Idle      time.Duration // between two reads of its answer, and for a write to the client
	Max       time.Duration // of a call
	Drain     time.Duration // how long an answer is read on after its client hung up
	Stop      time.Duration // how long a gateway that stops waits for its calls

	Upstreams []upstreamConfig

	pricesLine, tlsLine int // of these members in the file
}

// tlsFiles names PEM files. They are read again when they change.
type tlsFiles struct{ Certificate, Key string }

// upstreamConfig is a provider, under a name that stands first in the paths of its calls.
type upstreamConfig struct {
	Name     string
	Protocol protocol
	Base     *url.URL // as the provider's own client takes it, without a slash at its end

	KeyFile, KeyEnv string // one of the two has the provider's key
	Header          string // that carries the key; "": what the protocol says
	OutputField     string // that limits the output of chat completions, where a request has none; "": what the protocol says

	AnyOrganization bool
	Organizations   []uuid.UUID // whose callers may use it, unless any may

	keyLine int // of KeyFile or KeyEnv in the config's file
}

// protocol is how a provider speaks.
type protocol string

// The protocols.
const (
	openAI    protocol = "openai"
	anthropic protocol = "anthropic"
)

// newConfig returns the defaults.
func newConfig() config {
	return config{
		Listen: "127.0.0.1:8090", Hold: 600 * time.Second, MinOutput: 16, MaxBody: 20 << 20, MaxStreams: 1000,
		FirstByte: 600 * time.Second, Idle: 300 * time.Second, Max: 3600 * time.Second, Drain: 60 * time.Second, Stop: 30 * time.Second,
	}
}

// readConfig reads a file. Its error names the file, the line and the field of each fault.
func readConfig(path string) (config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return config{}, err
	}
	d := &decoder{file: path}
	c := newConfig()
	if root := d.document(text); root != nil {
		d.config(*root, &c)
	}
	return c, errors.Join(d.faults...)
}

// config reads the members of the file.
func (d *decoder) config(at node, c *config) {
	folder := filepath.Dir(d.file)
	d.mapping(at, []string{"prices", "upstreams"}, map[string]func(node){
		"listen":                       func(n node) { c.Listen = d.address(n) },
		"tls":                          func(n node) { c.TLS, c.tlsLine = d.tls(n, folder), n.Line },
		"prices":                       func(n node) { c.Prices, c.pricesLine = d.pathOf(n, folder), n.Line },
		"hold_seconds":                 func(n node) { c.Hold = d.seconds(n, 10, 86400) },
		"min_output_tokens":            func(n node) { c.MinOutput = d.integer(n, 1, 1_000_000) },
		"max_body_bytes":               func(n node) { c.MaxBody = d.integer(n, 1<<10, 32<<20) },
		"max_streams":                  func(n node) { c.MaxStreams = int(d.integer(n, 1, 100_000)) },
		"max_streams_per_organization": func(n node) { c.MaxStreamsPerOrganization = int(d.integer(n, 1, 100_000)) },
		"first_byte_seconds":           func(n node) { c.FirstByte = d.seconds(n, 1, 3600) },
		"idle_seconds":                 func(n node) { c.Idle = d.seconds(n, 1, 3600) },
		"max_seconds":                  func(n node) { c.Max = d.seconds(n, 1, 86400) },
		"drain_seconds":                func(n node) { c.Drain = d.seconds(n, 0, 3600) },
		"stop_seconds":                 func(n node) { c.Stop = d.seconds(n, 0, 3600) },
		"upstreams":                    func(n node) { c.Upstreams = d.upstreams(n, folder) },
	})
	if c.MaxStreamsPerOrganization > c.MaxStreams {
		d.fault(at.line("max_streams_per_organization"), "max_streams_per_organization", "must be at most max_streams")
	}
	if c.MaxStreamsPerOrganization == 0 {
		c.MaxStreamsPerOrganization = max(1, c.MaxStreams*3/4)
	}
}

func (d *decoder) tls(at node, folder string) *tlsFiles {
	t := new(tlsFiles)
	d.mapping(at, []string{"cert_file", "key_file"}, map[string]func(node){
		"cert_file": func(n node) { t.Certificate = d.pathOf(n, folder) },
		"key_file":  func(n node) { t.Key = d.pathOf(n, folder) },
	})
	return t
}

func (d *decoder) upstreams(at node, folder string) (all []upstreamConfig) {
	named := map[string]int{}
	for _, one := range d.list(at, 1, maxUpstreams) {
		u := d.upstream(one, folder)
		if line, twice := named[u.Name]; twice && u.Name != "" {
			d.fault(one.line("name"), one.path+".name", fmt.Sprintf("is %q, as at line %d", u.Name, line))
		}
		named[u.Name] = one.line("name")
		all = append(all, u)
	}
	return all
}

const (
	maxUpstreams     = 1000
	maxOrganizations = 100_000
)

var (
	upstreamName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	ownPaths     = []string{"healthz", "readyz", "metrics"}
	headerName   = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

func (d *decoder) upstream(at node, folder string) upstreamConfig {
	var u upstreamConfig
	d.mapping(at, []string{"name", "protocol", "base_url", "organizations"}, map[string]func(node){
		"name": func(n node) {
			u.Name = d.matching(n, upstreamName, "must have 1 to 63 characters of a-z, 0-9 and -, not - at its beginning")
			if slices.Contains(ownPaths, u.Name) {
				d.faultAt(n, "must not be "+strings.Join(ownPaths, ", ")+", which are the gateway's own paths")
			}
		},
		"protocol": func(n node) {
			u.Protocol = protocol(d.text(n))
			if u.Protocol != openAI && u.Protocol != anthropic {
				d.faultAt(n, "must be openai or anthropic")
			}
		},
		"base_url":      func(n node) { u.Base = d.baseURL(n) },
		"key_file":      func(n node) { u.KeyFile = d.pathOf(n, folder) },
		"key_env":       func(n node) { u.KeyEnv = d.matching(n, variableName, "must be the name of an environment variable") },
		"header":        func(n node) { u.Header = d.keyHeader(n) },
		"output_field":  func(n node) { u.OutputField = d.outputField(n) },
		"organizations": func(n node) { u.AnyOrganization, u.Organizations = d.organizations(n) },
	})
	if (u.KeyFile == "") == (u.KeyEnv == "") && at.has() {
		d.fault(at.Line, at.path, "needs either key_file or key_env")
	}
	u.keyLine = max(at.line("key_file"), at.line("key_env")) // of a member that is missing: where the upstream begins
	return u
}

func (d *decoder) baseURL(n node) *url.URL {
	base, err := url.Parse(d.text(n))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		d.faultAt(n, "must be an http or https URL")
	case base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" || base.RawPath != "":
		d.faultAt(n, "must have no user, query, fragment or encoded path")
	default:
		base.Path = strings.TrimRight(base.Path, "/")
		return base
	}
	return &url.URL{}
}

// keyHeader refuses headers that would not reach the provider, or that the gateway sets itself.
func (d *decoder) keyHeader(n node) string {
	name := d.matching(n, headerName, "must be the name of a header")
	isCredential := slices.ContainsFunc(credentialHeaders, func(one string) bool { return strings.EqualFold(one, name) })
	if name != "" && isOwn(name) && !isCredential {
		d.faultAt(n, "is a header that the gateway does not send")
	}
	return name
}

func (d *decoder) outputField(n node) string {
	name := d.text(n)
	if name != "max_tokens" && name != "max_completion_tokens" {
		d.faultAt(n, "must be max_tokens or max_completion_tokens")
	}
	return name
}

func (d *decoder) organizations(n node) (all bool, ids []uuid.UUID) {
	items := d.list(n, 1, maxOrganizations)
	for _, item := range items {
		text := d.text(item)
		id, err := uuid.Parse(text)
		switch {
		case text == "*" && len(items) == 1:
			return true, nil
		case text == "*":
			d.faultAt(item, "must stand alone: it says all")
		case err != nil || id == uuid.Nil || len(text) != 36:
			d.faultAt(item, "must be the id of an organization, or * for all")
		case slices.Contains(ids, id):
			d.faultAt(item, "is given twice")
		default:
			ids = append(ids, id)
		}
	}
	return false, ids
}
