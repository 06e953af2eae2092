package web

import (
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch collects what goes wrong on a tab: what the console says, what the
// policy stops, what fails to load, and what is asked of any other server.
func watch(b *tab) func() []string {
	b.t.Helper()
	var mu sync.Mutex
	var troubles []string
	add := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		troubles = append(troubles, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				add("the console says: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			add("the script failed: %s", e.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, b.base) && !strings.HasPrefix(e.Request.URL, "about:") {
				add("something was asked of %s", e.Request.URL)
			}
		case *network.EventResponseReceived:
			if e.Response.Status >= 400 {
				add("%s: %d", e.Response.URL, e.Response.Status)
			}
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), troubles...)
	}
}
