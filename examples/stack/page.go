package stack

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
)

var signInToken = regexp.MustCompile(`name="token" value="([^"]*)"`)

// ReadPage opens a path of the page as a person would: it signs in with the
// viewer's key, follows where that leads, and returns what is shown.
func (s *Stack) ReadPage(ctx context.Context, path string) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Jar: jar}
	form, err := show(ctx, client, http.MethodGet, s.API(path), nil)
	if err != nil {
		return "", err
	}
	token := signInToken.FindStringSubmatch(form)
	if token == nil {
		return "", errors.New(s.API(path) + " does not ask for a key")
	}
	filled := url.Values{"token": {html.UnescapeString(token[1])}, "key": {s.Keys["viewer"]}, "next": {path}}
	return show(ctx, client, http.MethodPost, s.API("/sign-in"), filled)
}

func show(ctx context.Context, client *http.Client, method, address string, form url.Values) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", "text/html")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, address, response.Status)
	}
	return string(text), err
}
