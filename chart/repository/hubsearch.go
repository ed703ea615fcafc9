package repository

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// hubPath is where a hub answers searches: Monocular's API, which Artifact Hub
// understands too.
// https://artifacthub.github.io/hub/api/?urls.primaryName=Monocular%20compatible%20search%20API
const hubPath = "api/chartsvc/v1/charts/search"

// What a hub may take and send: Helm waits as long for a repository.
const (
	hubTimeout = 2 * time.Minute
	hubLimit   = 16 << 20
)

// A HubChart is one that a hub has found.
type HubChart struct {
	URL         string        `json:"url"`
	Version     string        `json:"version"`
	AppVersion  string        `json:"app_version"`
	Description string        `json:"description"`
	Repository  HubRepository `json:"repository"`
}

// HubRepository is the repository that has a chart.
type HubRepository struct {
	URL  string `json:"url"`
	Name string `json:"name"`
}

// hubAnswer is the part of a hub's answer that is used.
type hubAnswer struct {
	Data []struct {
		ID          string `json:"id"`
		ArtifactHub struct {
			PackageURL string `json:"packageUrl"`
		} `json:"artifactHub"`
		Attributes struct {
			Description string        `json:"description"`
			Repo        HubRepository `json:"repo"`
		} `json:"attributes"`
		Relationships struct {
			LatestChartVersion struct {
				Data struct {
					Version    string `json:"version"`
					AppVersion string `json:"app_version"`
				} `json:"data"`
			} `json:"latestChartVersion"`
		} `json:"relationships"`
	} `json:"data"`
}

// SearchHub asks a hub, such as https://hub.helm.sh, for charts.
func SearchHub(ctx context.Context, endpoint, text string) ([]HubChart, error) {
	u, err := url.Parse(endpoint)
	if err == nil && u.Hostname() == "" {
		err = errors.New("no hostname provided")
	}
	if err != nil {
		return nil, fmt.Errorf("unable to create connection to %q: %w", endpoint, err)
	}
	u = u.JoinPath(hubPath)
	u.RawQuery = url.Values{"q": {text}}.Encode()
	answer, err := askHub(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("unable to perform search against %q: %w", endpoint, err)
	}
	found := []HubChart{}
	for _, d := range answer.Data {
		latest := d.Relationships.LatestChartVersion.Data
		found = append(found, HubChart{
			URL: cmp.Or(d.ArtifactHub.PackageURL, endpoint+"/charts/"+d.ID), Version: latest.Version, AppVersion: latest.AppVersion,
			Description: d.Attributes.Description, Repository: d.Attributes.Repo,
		})
	}
	return found, nil
}

func askHub(ctx context.Context, u *url.URL) (*hubAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "deployer")
	response, err := (&http.Client{Timeout: hubTimeout}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	answer := &hubAnswer{}
	if err := json.NewDecoder(io.LimitReader(response.Body, hubLimit)).Decode(answer); err != nil {
		return nil, fmt.Errorf("its answer can't be read: %w", err)
	}
	return answer, nil
}
