"""The pages that members see in a browser: sign-in, their organizations, the dashboard, the settings. They call the
families' services. `foundation.http.pages` is shared with the platform."""
