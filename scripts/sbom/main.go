// Command sbom writes the software bill of materials of a Go binary as CycloneDX JSON. It lists the linked modules and the
// standard library, which it reads from the binary.
//
//	sbom -version 1.2.3 -time 1790000000 dist/remit > remit.cdx.json
//
// The output depends only on the binary, the version and the time.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

func main() {
	version := flag.String("version", "", "version of the binary")
	seconds := flag.Int64("time", 0, "build time in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION -time SECONDS BINARY")
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*seconds, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, binary, version string, made time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	described := bom(info, sha256.Sum256(content), version, made)
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(described, cdx.SpecVersion1_6)
}

// bom describes a binary. The serial number derives from the binary's hash, so it changes when the binary changes.
func bom(info *debug.BuildInfo, hash [sha256.Size]byte, version string, made time.Time) *cdx.BOM {
	program := cdx.Component{
		BOMRef: purl(info.Main.Path, version), Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version,
		PackageURL: purl(info.Main.Path, version),
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(hash[:])}},
	}
	linked := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		switch {
		case module.Replace == nil:
		case strings.HasPrefix(module.Replace.Path, "./"): // a module of this repository, which is part of the release
			module.Version = version
		default:
			module = module.Replace
		}
		linked = append(linked, library(module.Path, module.Version, module.Sum))
	}
	var references []string
	for _, component := range linked {
		references = append(references, component.BOMRef)
	}
	b := cdx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, hash[:]).URN()
	b.Metadata = &cdx.Metadata{Timestamp: made.UTC().Format(time.RFC3339), Component: &program}
	b.Components = &linked
	b.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &references}}
	return b
}

func library(path, version, sum string) cdx.Component {
	c := cdx.Component{
		BOMRef: purl(path, version), Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl(path, version),
	}
	if sum != "" { // a hash of a list of hashes, not of a file, so it does not fit into Hashes
		c.Properties = &[]cdx.Property{{Name: "golang:sum", Value: sum}}
	}
	return c
}

// purl returns the package URL of a module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
