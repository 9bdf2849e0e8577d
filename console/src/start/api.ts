/** Queries of the first steps. */
import { useProviders } from "../providers/api";

/** Returns the enabled providers that have credentials. */
export function useReadyProviders() {
  const providers = useProviders();
  return { ...providers, data: providers.data?.filter((provider) => provider.enabled && provider.credentials_configured) };
}
