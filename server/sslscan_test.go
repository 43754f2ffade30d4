package server

import (
	"crypto"
	"encoding/xml"
	"os/exec"
	"regexp"
	"testing"
)

// scanReport is what sslscan --xml prints, as far as it is judged here.
type scanReport struct {
	Protocols []struct {
		Type    string `xml:"type,attr"`
		Version string `xml:"version,attr"`
		Enabled bool   `xml:"enabled,attr"`
	} `xml:"ssltest>protocol"`
	Renegotiation []struct {
		Supported bool `xml:"supported,attr"`
		Secure    bool `xml:"secure,attr"`
	} `xml:"ssltest>renegotiation"`
	Compression []struct { // left out by an sslscan whose OpenSSL knows no compression
		Supported bool `xml:"supported,attr"`
	} `xml:"ssltest>compression"`
	Heartbleed []struct {
		Version    string `xml:"sslversion,attr"`
		Vulnerable bool   `xml:"vulnerable,attr"`
	} `xml:"ssltest>heartbleed"`
	Ciphers []struct {
		Version  string `xml:"sslversion,attr"`
		Name     string `xml:"cipher,attr"`
		Bits     int    `xml:"bits,attr"`
		Strength string `xml:"strength,attr"`
	} `xml:"ssltest>cipher"`
	Groups []struct {
		Name string `xml:"name,attr"`
		Bits int    `xml:"bits,attr"`
	} `xml:"ssltest>group"`
}

func TestSslscanFindsNothingWeak(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs sslscan")
	}
	program, err := exec.LookPath("sslscan")
	if err != nil {
		t.Fatalf("%v: scripts/install-tools.sh installs it", err)
	}
	for kind, newKey := range map[string]func(*testing.T) crypto.Signer{"ECDSA": newECDSAKey, "RSA": newRSAKey} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			own := certify(t, 1, newKey(t), nil)
			s := runSecureServer(t, newTLSFiles(t, own), own)
			output, err := exec.CommandContext(t.Context(), program, "--xml=-", "--no-colour", s.address).Output()
			if err != nil {
				t.Fatalf("sslscan: %v\n%s", err, output)
			}
			var report scanReport
			if err := xml.Unmarshal(output, &report); err != nil {
				t.Fatalf("%v in %s", err, output)
			}
			report.judge(t)
			if t.Failed() {
				t.Logf("%s", output)
			}
		})
	}
}

func (r scanReport) judge(t *testing.T) {
	t.Helper()
	if len(r.Protocols) < 6 || len(r.Heartbleed) == 0 || len(r.Renegotiation) == 0 || len(r.Groups) == 0 {
		t.Error("the report is not whole")
	}
	for _, p := range r.Protocols {
		if wanted := p.Type == "tls" && (p.Version == "1.2" || p.Version == "1.3"); p.Enabled != wanted {
			t.Errorf("%s %s is enabled: %t, want %t", p.Type, p.Version, p.Enabled, wanted)
		}
	}
	for _, renegotiation := range r.Renegotiation {
		if renegotiation.Supported {
			t.Error("renegotiation is supported")
		}
	}
	for _, compression := range r.Compression {
		if compression.Supported {
			t.Error("compression is supported")
		}
	}
	for _, heartbleed := range r.Heartbleed {
		if heartbleed.Vulnerable {
			t.Errorf("heartbleed in %s", heartbleed.Version)
		}
	}
	for _, group := range r.Groups {
		if group.Bits < 112 {
			t.Errorf("the group %s has %d bits", group.Name, group.Bits)
		}
	}
	r.judgeCiphers(t)
}

// strongCipher names those of TLS 1.3, and those of TLS 1.2 with forward secrecy and authenticated encryption.
var strongCipher = regexp.MustCompile(`^(TLS_AES_(128|256)_GCM_SHA(256|384)|TLS_CHACHA20_POLY1305_SHA256|` +
	`ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305))$`)

func (r scanReport) judgeCiphers(t *testing.T) {
	t.Helper()
	found := map[string]int{}
	for _, cipher := range r.Ciphers {
		found[cipher.Version]++
		// sslscan calls the suites of TLS 1.3 "acceptable", and those of 1.2 "strong".
		if cipher.Strength != "strong" && !(cipher.Strength == "acceptable" && cipher.Version == "TLSv1.3") {
			t.Errorf("%s is called %q", cipher.Name, cipher.Strength)
		}
		if cipher.Bits < 128 || !strongCipher.MatchString(cipher.Name) {
			t.Errorf("%s with %d bits is weak", cipher.Name, cipher.Bits)
		}
	}
	if len(found) != 2 || found["TLSv1.2"] != 3 || found["TLSv1.3"] != 3 {
		t.Errorf("ciphers found: %v, want 3 of TLSv1.2 and 3 of TLSv1.3", found)
	}
}
