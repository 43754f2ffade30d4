package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
)

const goodConfig = `listen: 127.0.0.1:0
prices: prices.json
upstreams:
  - name: openai
    protocol: openai
    base_url: https://api.openai.example/v1
    key_file: key
    organizations: ["0198c1f0-0000-7000-8000-000000000001"]
`

// newFolder has a config and the files that it names.
func newFolder(t *testing.T, config string) (path string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"gateway.yaml": config, "prices.json": priceTable, "key": providerKey, "empty": "\n"} {
		suite.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return filepath.Join(folder, "gateway.yaml")
}

func TestAConfigErrorNamesFileLineAndField(t *testing.T) {
	t.Parallel()
	_, upstream, _ := strings.Cut(goodConfig, "upstreams:\n")
	for want, change := range map[string][2]string{
		":1: listne is no field":                                {"listen", "listne"},
		":1: listen must be host:port":                          {"127.0.0.1:0", "here"},
		":3: prices is given twice":                             {"prices: prices.json\n", "prices: prices.json\nprices: prices.json\n"},
		":1: prices is missing":                                 {"prices: prices.json\n", ""},
		":2: prices: open ":                                     {"prices.json", "none.json"},
		":2: prices must be a text":                             {"prices.json", "[1]"},
		":2: prices: ":                                          {"prices.json", "key"},
		":1: hold_seconds must be an integer from 10 to 86400":  {"listen: 127.0.0.1:0", "hold_seconds: 9"},
		":1: max_streams must be an integer":                    {"listen: 127.0.0.1:0", "max_streams: 1.5"},
		":1: max_streams_per_organization must be at most":      {"listen: 127.0.0.1:0", "max_streams_per_organization: 2000"},
		":1: tls.key_file is missing":                           {"listen: 127.0.0.1:0", "tls: {cert_file: key}"},
		":9: upstreams[1].name is \"openai\", as at line 4":     {upstream, upstream + upstream},
		":4: upstreams[0].name must not be healthz":             {"name: openai", "name: metrics"},
		":4: upstreams[0].name must have 1 to 63":               {"name: openai", "name: Open/AI"},
		":5: upstreams[0].protocol must be openai or anthropic": {"protocol: openai", "protocol: grpc"},
		":6: upstreams[0].base_url must be an http":             {"https://api.openai.example/v1", "api.openai.example"},
		":6: upstreams[0].base_url must have no user":           {"https://api", "https://me:secret@api"},
		":7: upstreams[0].key_file: open ":                      {"key_file: key", "key_file: none"},
		":7: upstreams[0].key_file: ":                           {"key_file: key", "key_file: empty"},
		":7: upstreams[0].key_env: NO_SUCH_KEY holds no key":    {"key_file: key", "key_env: NO_SUCH_KEY"},
		":4: upstreams[0] needs either key_file or key_env":     {"    key_file: key\n", ""},
		":4: upstreams[0].organizations is missing":             {`    organizations: ["0198c1f0-0000-7000-8000-000000000001"]` + "\n", ""},
		":8: upstreams[0].organizations[0] must be the id":      {"0198c1f0-0000-7000-8000-000000000001", "acme"},
		":8: upstreams[0].organizations[1] must stand alone":    {`0001"]`, `0001", "*"]`},
		":8: upstreams[0].organizations must be a list":         {`["0198c1f0-0000-7000-8000-000000000001"]`, "[]"},
		":8: upstreams[0].fallback is no field":                 {"    organizations", "    fallback: x\n    organizations"},
		":8: upstreams[0].header is a header that":              {"    organizations", "    header: Cookie\n    organizations"},
		":8: upstreams[0].output_field must be":                 {"    organizations", "    output_field: n\n    organizations"},
		": is no YAML: line 2":                                  {"prices: prices.json", "\t" + providerKey},
		":9: must be one document":                              {upstream, upstream + "---\n{}\n"},
	} {
		path := newFolder(t, strings.Replace(goodConfig, change[0], change[1], 1))
		_, err := readSettings(path)
		if err == nil || !strings.Contains(err.Error(), path+want) || strings.Contains(err.Error(), providerKey) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if _, err := readSettings(newFolder(t, "")); err == nil || !strings.Contains(err.Error(), ":1: is empty") {
		t.Error(err)
	}
}

func TestTheDefaultsOfAConfig(t *testing.T) {
	t.Parallel()
	s := must(readSettings(newFolder(t, goodConfig)))(t)
	if s.Hold != 600*time.Second || s.MinOutput != 16 || s.MaxBody != 20<<20 || s.MaxStreamsPerOrganization != s.MaxStreams*3/4 || s.version == "" {
		t.Errorf("%+v", s.config)
	}
	if u := s.upstreams["openai"]; u.key() != providerKey || u.isShared() || u.AnyOrganization || len(s.warnings()) != 0 {
		t.Error("its upstream")
	}
}

func TestAChangeOfAFileIsReadAndOneThatCannotBeReadKeepsTheOld(t *testing.T) {
	t.Parallel()
	path, logs := newFolder(t, goodConfig), new(serviceproc.Output)
	s := must(openSource(path, slog.New(slog.NewTextHandler(logs, nil))))(t)
	file := func(name, text string) {
		suite.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600))
		s.look()
	}
	key := func() string { return s.current.Load().upstreams["openai"].key() }
	first, version := key(), s.current.Load().version
	file("key", "sk-another-secret")
	if first != providerKey || key() != "sk-another-secret" {
		t.Error("the key was not read again")
	}
	file("prices.json", strings.Replace(priceTable, "2e-06", "3e-06", 1))
	if s.current.Load().version == version {
		t.Error("the prices were not read again")
	}
	file("gateway.yaml", "listen: nowhere\n")
	for range 3 {
		s.look()
	}
	if key() != "sk-another-secret" || strings.Count(logs.String(), "the previous one stays in force") != 1 || !strings.Contains(logs.String(), "gateway.yaml:1: listen must be host:port") {
		t.Errorf("after a bad one: %s", logs)
	}
	// A file that only the new config names comes later than the config.
	file("gateway.yaml", strings.Replace(goodConfig, "key_file: key", "key_file: newkey", 1))
	file("newkey", "sk-third-secret")
	if key() != "sk-third-secret" {
		t.Errorf("the key is still the old one: %s", logs)
	}
	file("gateway.yaml", strings.Replace(goodConfig, `"0198c1f0-0000-7000-8000-000000000001"`, `"*"`, 1))
	if !s.current.Load().upstreams["openai"].isShared() || !strings.Contains(logs.String(), "serves every organization") {
		t.Errorf("organizations: %s", logs)
	}
	if strings.Contains(logs.String(), "secret") {
		t.Errorf("the log has a key: %s", logs)
	}
}
