//go:build long

package release

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

func debianPackage(t *testing.T, dist string, question string, more ...string) string {
	t.Helper()
	file := filepath.Join(dist, "remit_9.8.7~rc.1_"+runtime.GOARCH+".deb")
	output, err := exec.Command("dpkg-deb", append([]string{question, file}, more...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

func TestTheDebianPackageHasRootOwnedFilesAndAConffile(t *testing.T) {
	dist := built(t)
	contents := debianPackage(t, dist, "--contents")
	for file, mode := range map[string]string{
		"./usr/bin/remit": "-rwxr-xr-x", "./etc/remit/remit.env": "-rw-r-----", "./lib/systemd/system/remit.service": "-rw-r--r--",
		"./usr/share/doc/remit/copyright": "-rw-r--r--", "./usr/share/doc/remit/examples/tls.conf": "-rw-r--r--",
		"./lib/systemd/system/remit-gateway.service": "-rw-r--r--", "./usr/share/doc/remit/examples/gateway.conf": "-rw-r--r--",
	} {
		if !regexp.MustCompile("(?m)^" + mode + " root/root .* " + regexp.QuoteMeta(file) + "$").MatchString(contents) {
			t.Errorf("no %s %s owned by root in\n%s", mode, file, contents)
		}
	}
	for field, value := range map[string]string{"Version": "9.8.7~rc.1", "Architecture": runtime.GOARCH, "Package": "remit"} {
		if is := strings.TrimSpace(debianPackage(t, dist, "--field", field)); is != value {
			t.Errorf("%s is %q, want %q", field, is, value)
		}
	}
	if files := debianPackage(t, dist, "--info", "conffiles"); files != "/etc/remit/remit.env\n" {
		t.Errorf("the conffiles are %q", files)
	}
}
