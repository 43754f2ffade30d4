package kernel

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestIDsAreUUIDsOfVersion7AndKeepTheCellOfTheirOwner(t *testing.T) {
	t.Parallel()
	for range 1000 {
		root := NewRootID()
		id := NewID(root)
		if CellOf(id) != CellOf(root) || id == root {
			t.Fatalf("owner %s, id %s", root, id)
		}
		for _, id := range []uuid.UUID{root, id} {
			if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
				t.Fatalf("%s has version %d, variant %s", id, id.Version(), id.Variant())
			}
		}
	}
}

func TestTheLast16BitsOfAnIDAreItsCell(t *testing.T) {
	t.Parallel()
	for _, cell := range []uint16{0, 1, 0x0a0b, 0xc3f1, 0xffff} {
		id := IDIn(cell)
		if CellOf(id) != cell || id[14] != byte(cell>>8) || id[15] != byte(cell) {
			t.Errorf("cell %04x: %s", cell, id)
		}
	}
}

func TestRootIDsSpreadOverTheCells(t *testing.T) {
	t.Parallel()
	cells := map[uint16]bool{}
	for range 1000 {
		cells[CellOf(NewRootID())] = true
	}
	if len(cells) < 900 { // about 992 when drawn evenly from 65,536
		t.Errorf("1000 ids are in %d cells", len(cells))
	}
}

func TestTheOrderOfIDsIsTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	previous := IDIn(0xffff)
	for range 10_000 {
		id := IDIn(0) // the cell must not outweigh the time
		if bytes.Compare(previous[:], id[:]) >= 0 {
			t.Fatalf("%s was made before %s", previous, id)
		}
		previous = id
		previous[14], previous[15] = 0xff, 0xff
	}
}

func TestIDsDrawnAtOnceDiffer(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if _, twice := seen.LoadOrStore(IDIn(7), true); twice {
					t.Error("an id was drawn twice")
				}
			}
		})
	}
	wg.Wait()
}

func TestMadeAtReadsTheTimeOfAnID(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6c3f1")
	if made := MadeAt(id); made.UnixMilli() != 0x018f3c2ab4d5 {
		t.Errorf("%s: %d ms", id, made.UnixMilli())
	}
	// Ids that are drawn faster than the clock ticks run a little ahead of it.
	if age := time.Since(MadeAt(NewRootID())); age < -time.Second || age > time.Second {
		t.Errorf("a fresh id is %s old", age)
	}
}
