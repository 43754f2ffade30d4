package records

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

func TestOneReportOfAnOrganizationIsMadeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, organization := newReports(), uuid.UUID{1}
		enter := func(organization uuid.UUID) (entered chan error, release func()) {
			entered = make(chan error, 1)
			var leave func()
			go func() {
				var err error
				leave, err = r.enter(t.Context(), organization)
				entered <- err
			}()
			synctest.Wait()
			return entered, func() { leave(); synctest.Wait() }
		}
		first, release := enter(organization)
		wantEntered(t, "the first", first, nil)
		other, _ := enter(uuid.UUID{2})
		wantEntered(t, "another organization's", other, nil)
		var waiting []chan error
		var releases []func()
		for range reportsWaiting {
			entered, leave := enter(organization)
			waiting, releases = append(waiting, entered), append(releases, leave)
		}
		beyond, _ := enter(organization)
		wantEntered(t, "one more", beyond, ErrManyReports)
		release()
		for i := range 3 {
			wantEntered(t, "the one that waited longest", waiting[i], nil)
			if len(waiting[i+1]) > 0 {
				t.Fatalf("%d reports are made at once", i+2)
			}
			if i < 2 {
				releases[i]()
			}
		}
		time.Sleep(reportWait)
		synctest.Wait()
		for _, entered := range waiting[3:] {
			wantEntered(t, "one that has waited for long", entered, ErrManyReports)
		}
		releases[2]()
		if len(r.queue) != 1 { // the other organization's
			t.Errorf("%d organizations are remembered", len(r.queue))
		}
	})
}

func wantEntered(t *testing.T, what string, entered <-chan error, want error) {
	t.Helper()
	select {
	case err := <-entered:
		if err != want {
			t.Fatalf("%s: %v, want %v", what, err, want)
		}
	default:
		t.Fatalf("%s waits", what)
	}
}
