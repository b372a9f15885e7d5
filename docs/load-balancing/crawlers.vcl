# Limits for searches: of one address, and of crawlers. Explained in docs/how-to/crawlers.md.
vcl 4.1;

import vsthrottle;

backend plone1 {
    .host = "10.0.0.11";
    .port = "8080";
}

sub vcl_recv {
    unset req.http.X-Search;
    if (req.url ~ "(?i)^[^?]*/(@@)?(search|search_rss)\?" || req.url ~ "^[^?]*/@(search|pgsearch|solr|querystring-search)\?") {
        set req.http.X-Search = "yes";
        if (req.http.User-Agent ~ "(?i)bot|crawl|spider|slurp"
            && req.url ~ "[?&](Subject|portal_type|Creator|path|similar|facets|facet\.|facet_conditions|query)") {
            return (synth(403));
        }
        # Behind another proxy, client.identity has to be set to the address of the visitor first.
        if (vsthrottle.is_denied("search " + client.identity, 60, 60s)) {
            return (synth(429));
        }
    }
    set req.url = "/VirtualHostBase/http/" + req.http.Host + "/Plone/VirtualHostRoot" + req.url;
    if (req.http.X-Search) {
        return (pass);
    }
}

sub vcl_deliver {
    if (req.http.X-Search) {
        set resp.http.X-Robots-Tag = "noindex, follow";
    }
}
