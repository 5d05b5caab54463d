"""Prints the three best scores of game_x. It names no endpoint: AWS_ENDPOINT_URL_DYNAMODB says where DynamoDB is."""

import boto3
from boto3.dynamodb.conditions import Key

dynamodb = boto3.resource("dynamodb", region_name="us-east-1", aws_access_key_id="local", aws_secret_access_key="local")
best = dynamodb.Table("Leaderboards").query(
    KeyConditionExpression=Key("pk").eq("game_x"), ScanIndexForward=False, Limit=3)
for item in best["Items"]:
    print(item["sk"])
