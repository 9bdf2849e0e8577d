"""The pages for members in a browser: sign-in, choice of an organization, dashboard, settings. They call the families'
services. The portal and the platform share `foundation.http.pages`."""
