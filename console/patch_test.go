package console

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"remit/client"
)

// A patch is sent when figures differ, so they must be all that a patch is made of.
func TestFiguresDifferWhereverPatchesDo(t *testing.T) {
	t.Parallel()
	plain := client.SessionInfo{Status: statusActive, CreatedAt: time.UnixMilli(1e12), ExpiresAt: time.UnixMilli(3e12), MaxActions: 10, MaxValue: 10}
	text := func(s client.SessionInfo) string {
		return string(must(json.Marshal(patchOf(sessionRow{SessionInfo: s})))(t))
	}
	changed := 0
	for i := range reflect.TypeFor[client.SessionInfo]().NumField() {
		other := plain
		switch field := reflect.ValueOf(&other).Elem().Field(i); {
		case field.Type() == reflect.TypeFor[time.Time]():
			field.Set(reflect.ValueOf(time.UnixMilli(2e12)))
		case field.Kind() == reflect.Int64:
			field.SetInt(7)
		case field.Kind() == reflect.String:
			field.SetString("completed")
		}
		name := reflect.TypeFor[client.SessionInfo]().Field(i).Name
		if name == "ID" || text(other) == text(plain) {
			continue
		}
		changed++
		wantEqual(t, name+" changes a figure", figuresOf(sessionRow{SessionInfo: other}) != figuresOf(sessionRow{SessionInfo: plain}), true)
	}
	if changed < 9 {
		t.Errorf("%d fields change the patch", changed)
	}
}
