package faults

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

//go:embed preload/preload.c
var preloadSource []byte

// preloadDir holds the compiled library until removePreload, which TestMain calls.
var preloadDir string

func removePreload() { _ = os.RemoveAll(preloadDir) }

// preloaded compiles the library that redis-server loads, once for all tests, and returns its path.
var preloaded = sync.OnceValues(func() (string, error) {
	var err error
	if preloadDir, err = os.MkdirTemp("", "remit-faults-"); err != nil {
		return "", err
	}
	source, library := filepath.Join(preloadDir, "preload.c"), filepath.Join(preloadDir, "preload.so")
	if err := os.WriteFile(source, preloadSource, 0o600); err != nil {
		return "", err
	}
	output, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("preload.c does not compile: %w\n%s", err, output)
	}
	return library, nil
})

// Machine simulates the disk and the clock under a redis-server. Pass Env in redisproc.Config.
type Machine struct {
	Env []string

	t       testing.TB
	control *os.File // file shared with preload/preload.c
}

// The layout of struct control in preload/preload.c.
const (
	syncDelayAt  = 0
	clockAt      = 8
	syncedAt     = 16
	syncedSize   = 16
	syncedFiles  = 64
	controlBytes = syncedAt + syncedFiles*syncedSize
)

// NewMachine returns a machine whose disk and clock behave as the real ones until it is set otherwise.
func NewMachine(t testing.TB) *Machine {
	t.Helper()
	library, err := preloaded()
	if err != nil {
		t.Fatal(err)
	}
	control, err := os.Create(filepath.Join(t.TempDir(), "control"))
	if err == nil {
		err = control.Truncate(controlBytes)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	return &Machine{Env: []string{"LD_PRELOAD=" + library, "REMIT_FAULTS_CONTROL=" + control.Name()}, t: t, control: control}
}

// DelaySyncs adds a delay to every sync of a file to disk.
func (m *Machine) DelaySyncs(by time.Duration) { m.set(syncDelayAt, by) }

// StepClock sets the wall clock ahead of the real one, or behind it if negative.
func (m *Machine) StepClock(ahead time.Duration) { m.set(clockAt, ahead) }

func (m *Machine) set(at int64, value time.Duration) {
	m.t.Helper()
	if _, err := m.control.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(value.Microseconds())), at); err != nil {
		m.t.Fatal(err)
	}
}

// Synced returns how many bytes of a file have certainly reached the disk: its size when its last complete sync began.
func (m *Machine) Synced(path string) int64 {
	m.t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		m.t.Fatal(err)
	}
	inode := info.Sys().(*syscall.Stat_t).Ino
	files := make([]byte, syncedFiles*syncedSize)
	if _, err := m.control.ReadAt(files, syncedAt); err != nil {
		m.t.Fatal(err)
	}
	for file := files; len(file) > 0; file = file[syncedSize:] {
		if binary.NativeEndian.Uint64(file) == inode {
			return int64(binary.NativeEndian.Uint64(file[8:]))
		}
	}
	return 0
}

// LosePower truncates the append-only file to what has certainly reached the disk, as a power failure at the end of the
// server would. The server must have ended. It returns how many bytes are lost.
func (m *Machine) LosePower(r *Redis) int64 {
	m.t.Helper()
	file := r.AppendOnlyFile()
	written, synced := sizeOf(m.t, file), m.Synced(file)
	if err := os.Truncate(file, synced); err != nil {
		m.t.Fatal(err)
	}
	return written - synced
}

// Unsynced returns how many bytes of the append-only file a power failure would lose now.
func (m *Machine) Unsynced(r *Redis) int64 {
	m.t.Helper()
	file := r.AppendOnlyFile()
	synced := m.Synced(file) // read first, so that later writes count as unsynced
	return sizeOf(m.t, file) - synced
}

func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
