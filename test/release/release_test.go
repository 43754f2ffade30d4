//go:build long

package release

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/test/suite"
)

const (
	version = "9.8.7-rc.1"
	epoch   = 1_790_000_000 // the modification time of every file
)

// scratch is the directory of the release that the tests share.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "remit-release-"); err != nil {
		panic(err)
	}
	failed := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(failed)
}

// build runs scripts/release.sh only for this machine's platform, with this umask.
func build(dist, umask string) error {
	script := exec.Command("bash", "-c", "umask "+umask+" && exec ../../scripts/release.sh")
	script.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1790000000", "DIST="+dist,
		"TARGETS="+runtime.GOOS+"/"+runtime.GOARCH, "BUILD_FLAGS=")
	if output, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

var buildOnce = sync.OnceValue(func() error { return build(scratch, "022") })

// built returns the directory of a release.
func built(t *testing.T) string {
	t.Helper()
	noError(t, buildOnce())
	return scratch
}

// unpack unpacks the archive into a directory. It fails the test unless the archive has exactly the files of a release.
func unpack(t *testing.T, archive, name string) (dir string) {
	t.Helper()
	file := must(os.Open(archive))(t)
	defer file.Close()
	plain := must(gzip.NewReader(file))(t)
	dir = t.TempDir()
	modes := map[string]int64{name + "/": 0o755, name + "/LICENSE": 0o644, name + "/README.md": 0o644, name + "/remit": 0o755}
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		noError(t, err)
		mode, expected := modes[header.Name]
		delete(modes, header.Name)
		if !expected || header.Mode != mode || header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(time.Unix(epoch, 0)) {
			t.Errorf("the archive has %s, mode %o, of %d:%d at %v", header.Name, header.Mode, header.Uid, header.Gid, header.ModTime)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content := must(io.ReadAll(reader))(t)
		noError(t, os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, 0o700))
	}
	if len(modes) > 0 {
		t.Errorf("the archive lacks %v", modes)
	}
	return dir
}

func TestAReleaseIsStaticReproducibleAndListed(t *testing.T) {
	dist, again := built(t), t.TempDir()
	noError(t, build(again, "077"))
	name := "remit_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH
	dir := unpack(t, filepath.Join(dist, name+".tar.gz"), name)
	binary := filepath.Join(dir, "remit")

	t.Run("its binary prints its version", func(t *testing.T) {
		output, err := exec.Command(binary, "--version").Output()
		if err != nil || !strings.HasPrefix(string(output), "remit "+version+" ") {
			t.Errorf("%v: %s", err, output)
		}
	})
	info := must(buildinfo.ReadFile(binary))(t)
	t.Run("its binary is static", func(t *testing.T) {
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
			t.Error("the binary is built with cgo")
		}
	})
	t.Run("its bill of materials names every module in the binary", func(t *testing.T) { billOfMaterials(t, dist, name, info.Deps) })
	t.Run("two builds have the same bytes", func(t *testing.T) {
		one, two := sums(t, dist), sums(t, again)
		if one != two {
			t.Errorf("one build has\n%sand another\n%s", one, two)
		}
		if files, _ := filepath.Glob(dist + "/remit_*"); len(files) != strings.Count(one, "\n") {
			t.Errorf("the sums of %v are\n%s", files, one)
		}
	})
}

func sums(t *testing.T, dist string) string {
	t.Helper()
	return string(must(os.ReadFile(filepath.Join(dist, "SHA256SUMS")))(t))
}

func billOfMaterials(t *testing.T, dist, name string, modules []*debug.Module) {
	text := must(os.ReadFile(filepath.Join(dist, name+".cdx.json")))(t)
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	noError(t, json.Unmarshal(text, &bom))
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.6" || bom.Metadata.Component.Version != version {
		t.Errorf("the format is %s %s, the component %v", bom.BOMFormat, bom.SpecVersion, bom.Metadata.Component)
	}
	named := map[string]bool{}
	for _, c := range bom.Components {
		named[c.Name+" "+c.Version] = true
	}
	for _, module := range modules {
		linkedAs := module.Version
		if strings.HasPrefix(module.Path, "remit/") { // a module of this repository has the version of the release
			linkedAs = version
		}
		if !named[module.Path+" "+linkedAs] {
			t.Errorf("the bill of materials lacks %s %s", module.Path, linkedAs)
		}
	}
	if len(modules) < 10 || len(bom.Components) != len(modules)+1 { // one more for the standard library
		t.Errorf("the bill of materials has %d components, the binary %d modules", len(bom.Components), len(modules))
	}
}

// The tar of macOS and the BSDs lacks the flags for reproducible archives.
func TestAReleaseNeedsGNUTar(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tar", "gtar"} {
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho 'bsdtar 3.5.3 - libarchive 3.7.4'\n"), 0o700))
	}
	script := exec.Command("../../scripts/release.sh")
	script.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "VERSION="+version,
		"SOURCE_DATE_EPOCH=1790000000", "DIST="+filepath.Join(dir, "dist"), "BUILD_FLAGS=", "TARGETS=none/none")
	output, err := script.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "needs GNU tar") {
		t.Errorf("%v: %s", err, output)
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError
