package server

import (
	"crypto"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

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
			judgeScan(t, string(must(exec.CommandContext(t.Context(), program, "--xml=-", "--no-colour", s.address).Output())(t)))
		})
	}
}

var (
	scanned   = regexp.MustCompile(`<(protocol|renegotiation|compression|heartbleed|cipher|group) ([^/]*)/>`)
	attribute = regexp.MustCompile(`(\w+)="([^"]*)"`)
	// strongCipher names those of TLS 1.3, and those of TLS 1.2 with forward secrecy and authenticated encryption.
	strongCipher = regexp.MustCompile(`^(TLS_AES_(128|256)_GCM_SHA(256|384)|TLS_CHACHA20_POLY1305_SHA256|` +
		`ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305))$`)
)

// judgeScan judges what sslscan --xml prints. Compression is left out by one whose OpenSSL knows none.
func judgeScan(t *testing.T, report string) {
	t.Helper()
	found := map[string]int{}
	for _, element := range scanned.FindAllStringSubmatch(report, -1) {
		is, kind, weak := map[string]string{}, element[1], false
		for _, one := range attribute.FindAllStringSubmatch(element[2], -1) {
			is[one[1]] = one[2]
		}
		bits, _ := strconv.Atoi(is["bits"])
		switch kind {
		case "protocol":
			weak = (is["enabled"] != "0") != (is["type"] == "tls" && (is["version"] == "1.2" || is["version"] == "1.3"))
		case "renegotiation", "compression":
			weak = is["supported"] != "0"
		case "heartbleed":
			weak = is["vulnerable"] != "0"
		case "group":
			weak = bits < 112
		case "cipher": // sslscan calls the suites of TLS 1.3 "acceptable", and those of 1.2 "strong"
			kind = is["sslversion"]
			called := map[string]string{"TLSv1.2": "strong", "TLSv1.3": "acceptable"}[kind]
			weak = is["strength"] != called && is["strength"] != "strong" || bits < 128 || !strongCipher.MatchString(is["cipher"])
		}
		if found[kind]++; weak {
			t.Errorf("weak: %s", element[0])
		}
	}
	whole := found["protocol"] >= 6 && found["heartbleed"] > 0 && found["renegotiation"] > 0 && found["group"] > 0
	if !whole || found["TLSv1.2"] != 3 || found["TLSv1.3"] != 3 {
		t.Errorf("found %v, want 6 protocols, and 3 ciphers of TLSv1.2 and 3 of TLSv1.3, in\n%s", found, report)
	}
}
