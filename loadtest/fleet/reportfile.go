package fleet

import (
	"fmt"
	"os"
	"path/filepath"
)

// reportFile is a file that is written completely or not at all.
type reportFile struct {
	path string
	temp *os.File // beside it
}

// newReportFile reserves a path, so that an unwritable one is reported before the run. For an empty path it returns nil: no
// report.
func newReportFile(path string) (*reportFile, error) {
	if path == "" {
		return nil, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("-report %s: not a regular file", path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".loadtest-*")
	if err != nil {
		return nil, fmt.Errorf("-report: %w", err)
	}
	return &reportFile{path, temp}, nil
}

// report replaces the file with the report of a run. On nil it does nothing.
func (r *reportFile) report(of result) error {
	if r == nil {
		return nil
	}
	content, err := writePage(of)
	if err == nil {
		_, err = r.temp.Write(content)
	}
	if err == nil {
		err = r.temp.Chmod(0o644)
	}
	if closed := r.temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(r.temp.Name(), r.path)
	}
	if err != nil {
		return fmt.Errorf("-report: %w", err)
	}
	return nil
}

// discard removes the temporary file unless write has renamed it. On nil it does nothing.
func (r *reportFile) discard() {
	if r != nil {
		r.temp.Close()
		os.Remove(r.temp.Name())
	}
}
