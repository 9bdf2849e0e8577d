"""What members see in a browser: sign-in, their organizations, the dashboard, the settings. They call the families'
services, and change nothing by themselves. Shared with the platform: `foundation.http.pages`.
"""
